package turn

import (
	"strings"
	"unicode"
)

// maxSearchText bounds how much of one text is split into words, in bytes.
const maxSearchText = 16 << 10

// tokens splits text into stemmed lower-case words: at everything that is no letter or digit, where lower case meets
// upper case (createIssue), before the last capital of a run (HTTPServer), and between letters and digits.
func tokens(text string) []string {
	if len(text) > maxSearchText {
		text = strings.ToValidUTF8(text[:maxSearchText], "")
	}
	var all []string
	runes := []rune(text)
	start := 0
	flush := func(end int) {
		if end > start {
			all = append(all, stem(strings.ToLower(string(runes[start:end]))))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			start = i + 1
		case i > start && border(runes, i):
			flush(i)
		}
	}
	flush(len(runes))
	return all
}

func border(runes []rune, i int) bool {
	prev, r := runes[i-1], runes[i]
	switch {
	case unicode.IsDigit(prev) != unicode.IsDigit(r):
		return true
	case !unicode.IsUpper(r):
		return false
	case unicode.IsLower(prev):
		return true
	}
	return i+1 < len(runes) && unicode.IsLower(runes[i+1]) && !pluralOfCapitals(runes, i)
}

// pluralOfCapitals keeps URLs and IDs whole.
func pluralOfCapitals(runes []rune, i int) bool {
	return runes[i+1] == 's' && (i+2 == len(runes) || !unicode.IsLetter(runes[i+2]))
}

// stem takes off the endings that tell forms of one English word apart. It is light on purpose: a wrong stem costs
// more than a missed one.
func stem(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 4 && hasAnySuffix(w, "sses", "shes", "ches", "xes", "zes"):
		return w[:len(w)-2]
	case len(w) > 3 && strings.HasSuffix(w, "s") && !hasAnySuffix(w, "ss", "us", "is"):
		return stem(w[:len(w)-1])
	case len(w) > 5 && strings.HasSuffix(w, "ing"):
		return undouble(w[:len(w)-3])
	case len(w) > 4 && strings.HasSuffix(w, "ed"):
		return undouble(w[:len(w)-2])
	case len(w) > 4 && strings.HasSuffix(w, "e"):
		return w[:len(w)-1]
	}
	return w
}

func hasAnySuffix(w string, suffixes ...string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(w, s) {
			return true
		}
	}
	return false
}

// undouble turns runn into run, and leaves call and pass alone.
func undouble(w string) string {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

// stopWords carry no meaning in a query for a tool.
var stopWords = stopSet("a about after again all also am an and any are around as at be been before being but by can did do " +
	"does down each for from get give go had has have he her here his how i if in into is it its just let like made many me " +
	"more most much must my near need no not now of off on one only or our out over own please she so some somebody someone " +
	"something still such tell than that the their them then there these they thing this those through to too tool under up " +
	"us use want was we were what when where whether which while who whose why will with would yet you your")

func stopSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[stem(w)] = true
	}
	return set
}
