package turn

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// Doc is one tool as the search sees it.
type Doc struct {
	Name        string // the name to call it by; unique in an index
	Server      string // empty for a tool of this host
	Tool        string // its name on the server; empty for a tool of this host
	Description string
	Serves      capability.Domains
	Hint        string // further words to find it by
}

// Hit is one result, the best first.
type Hit struct {
	Doc
	Score float64
}

// Index finds tools by words: BM25 over fields, the words of a name counting most. It is immutable.
type Index struct {
	docs     []Doc
	postings map[string][]posting
	names    []string // the words of each doc's own name, joined
}

type posting struct {
	doc    int32
	weight float32 // weighted term frequency, lengths already taken into account
}

// Field weights and BM25's constants, fitted by hand on the catalogs of 60 real servers.
const (
	weightName        = 4
	weightServer      = 2
	weightServes      = 1.5
	weightHint        = 1.5
	weightSentence    = 1.5 // the first sentence of a description
	weightDescription = 0.5 // all of it
	saturation        = 1.2 // k1
	lengthNorm        = 0.5 // b, of the description only: the other fields are short
)

// Docs lists everything find_tools can find for this caller: its tools, and its servers' tools under their exposed
// names. A server that was never used contributes nothing; only demand starts it.
func (a *Admitted) Docs() []Doc {
	docs := make([]Doc, 0, len(a.Tools)+len(a.exposed.list))
	for _, c := range a.offered() {
		docs = append(docs, Doc{Name: c.ID.Name, Description: c.Config.(*capability.Tool).Description, Serves: c.Serves})
	}
	for _, x := range a.Exposed() {
		server, _ := a.Server(x.Server)
		docs = append(docs, Doc{Name: x.Name, Server: x.Server, Tool: x.Tool.Name, Description: x.Tool.Description, Serves: server.Serves})
	}
	return docs
}

// NewIndex builds an index.
func NewIndex(docs []Doc) *Index {
	x := &Index{docs: slices.Clone(docs), postings: map[string][]posting{}, names: make([]string, len(docs))}
	texts := make([][]string, len(docs))
	total := 0
	for i, d := range docs {
		texts[i] = tokens(d.Description)
		total += len(texts[i])
	}
	average := max(1, float64(total)/float64(max(1, len(docs))))
	for i, d := range docs {
		x.add(int32(i), d, texts[i], average)
	}
	return x
}

func (x *Index) add(i int32, d Doc, text []string, average float64) {
	weights := map[string]float64{}
	field := func(words []string, weight float64) {
		for _, w := range words {
			weights[w] += weight
		}
	}
	own := tokens(cmp.Or(d.Tool, d.Name))
	x.names[i] = strings.Join(own, " ")
	field(own, weightName)
	field(tokens(d.Server), weightServer)
	field(tokens(d.Hint), weightHint)
	for _, s := range d.Serves {
		field(tokens(string(s)), weightServes)
	}
	field(tokens(FirstSentence(d.Description)), weightSentence)
	field(text, weightDescription/(1-lengthNorm+lengthNorm*float64(len(text))/average))
	for w, weight := range weights {
		x.postings[w] = append(x.postings[w], posting{i, float32(weight)})
	}
}

// Len is the number of docs.
func (x *Index) Len() int { return len(x.docs) }

// maxQueryWords bounds the work one query can ask for.
const maxQueryWords = 32

// Search returns at most limit hits, the best first, equal ones in order of names.
func (x *Index) Search(query string, limit int) []Hit {
	words := queryWords(query)
	scores := make([]float64, len(x.docs))
	matched := make([]uint8, len(x.docs))
	for _, w := range words {
		list := x.postings[w]
		idf := math.Log(1 + (float64(len(x.docs))-float64(len(list))+0.5)/(float64(len(list))+0.5))
		for _, p := range list {
			tf := float64(p.weight)
			scores[p.doc] += idf * tf * (saturation + 1) / (tf + saturation)
			matched[p.doc]++
		}
	}
	asked := strings.Join(tokens(query), " ")
	var hits []Hit
	for i, s := range scores {
		if s == 0 {
			continue
		}
		s *= float64(matched[i]) / float64(len(words))
		if x.names[i] == asked || x.docs[i].Name == query {
			s += exactName
		}
		hits = append(hits, Hit{x.docs[i], s})
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name)) })
	return hits[:min(len(hits), max(limit, 0))]
}

// exactName lifts a tool above all others whose name was the query.
const exactName = 1000

// queryWords are the distinct words of a query in order, without those that carry no meaning unless there is nothing
// else.
func queryWords(query string) []string {
	var words, meaning []string
	for _, w := range tokens(query) {
		if slices.Contains(words, w) || len(words) == maxQueryWords {
			continue
		}
		words = append(words, w)
		if !stopWords[w] {
			meaning = append(meaning, w)
		}
	}
	if len(meaning) > 0 {
		return meaning
	}
	return words
}
