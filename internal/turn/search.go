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
}

// Hit is one result, the best first.
type Hit struct {
	Doc
	Score float64
}

// Index finds tools by words: BM25 over one text, in which the words of a name count twice, with other words for those of
// the query. That is all of it: weights for names, servers, first sentences and parameters were tried on the catalogs of 60
// real servers, and none of them did better on questions they were not fitted on. It is immutable.
type Index struct {
	docs     []Doc
	postings map[string][]posting
	names    []string // the words of each doc's own name, joined
}

type posting struct {
	doc    int32
	weight float32 // of the word in the doc: BM25's saturated frequency, the doc's length taken into account
}

// The usual constants of BM25.
const (
	saturation = 1.2  // k1
	lengthNorm = 0.75 // b
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
		own, server := tokens(cmp.Or(d.Tool, d.Name)), tokens(d.Server)
		x.names[i] = strings.Join(own, " ")
		texts[i] = slices.Concat(own, own, server, server, tokens(d.Description))
		for _, s := range d.Serves {
			texts[i] = append(texts[i], tokens(string(s))...)
		}
		total += len(texts[i])
	}
	average := max(1, float64(total)/float64(max(1, len(docs))))
	counts := map[string]int{}
	for i, words := range texts {
		clear(counts)
		for _, w := range words {
			counts[w]++
		}
		norm := saturation * (1 - lengthNorm + lengthNorm*float64(len(words))/average)
		for w, n := range counts {
			weight := float64(n) * (saturation + 1) / (float64(n) + norm)
			x.postings[w] = append(x.postings[w], posting{int32(i), float32(weight)})
		}
	}
	return x
}

// holds reports whether an index of docs would be this one.
func (x *Index) holds(docs []Doc) bool {
	return slices.EqualFunc(x.docs, docs, func(a, b Doc) bool {
		return a.Name == b.Name && a.Server == b.Server && a.Tool == b.Tool && a.Description == b.Description && slices.Equal(a.Serves, b.Serves)
	})
}

// Len is the number of docs.
func (x *Index) Len() int { return len(x.docs) }

// maxQueryWords bounds the work one query can ask for.
const maxQueryWords = 32

// Search returns at most limit hits, the best first, equal ones in order of names. A tool counts for more the more words of
// the query it matches.
func (x *Index) Search(query string, limit int) []Hit {
	words := queryWords(query)
	scores, best := make([]float64, len(x.docs)), make([]float64, len(x.docs))
	matched := make([]uint8, len(x.docs))
	for _, w := range words {
		clear(best)
		x.match(w, 1, best)
		for _, other := range synonyms[w] {
			x.match(other, synonymWeight, best)
		}
		for i, s := range best {
			if s > 0 {
				scores[i] += s
				matched[i]++
			}
		}
	}
	asked := strings.Join(tokens(query), " ")
	var hits []Hit
	for i, s := range scores {
		if s == 0 {
			continue
		}
		s *= math.Sqrt(float64(matched[i]) / float64(len(words)))
		if x.names[i] == asked || x.docs[i].Name == query {
			s += exactName
		}
		hits = append(hits, Hit{x.docs[i], s})
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name)) })
	return hits[:min(len(hits), max(limit, 0))]
}

// match raises the best match of every doc that has the word to what this one counts.
func (x *Index) match(word string, counts float64, best []float64) {
	list := x.postings[word]
	idf := math.Log(1 + (float64(len(x.docs))-float64(len(list))+0.5)/(float64(len(list))+0.5))
	for _, p := range list {
		best[p.doc] = max(best[p.doc], counts*idf*float64(p.weight))
	}
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
