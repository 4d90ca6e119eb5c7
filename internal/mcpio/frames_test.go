package mcpio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// sink is a router that notes what it gets.
type sink struct{ notifications, requests, results []string }

func (s *sink) notification(method, params []byte) {
	s.notifications = append(s.notifications, string(method)+string(params))
}

func (s *sink) asked(method, id, _ []byte) {
	s.requests = append(s.requests, string(method)+string(id))
}

// put implements shelf: it takes everything below 1000.
func (s *sink) put(id int64, result []byte) bool {
	if id < 1000 {
		s.results = append(s.results, fmt.Sprintf("%d=%s", id, result))
	}
	return id < 1000
}

func readFrames(src io.Reader, limit, budget int) (out string, to *sink, r *frameReader) {
	to = &sink{}
	r = newFrameReader(src, limit, &junkLog{budget: budget, now: time.Now}, to, to)
	data, _ := io.ReadAll(r)
	return string(data), to, r
}

func TestFrameReader(t *testing.T) {
	const limit = 200
	long := strings.Repeat("x", 1000)
	stub := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", id) }
	tests := map[string]struct{ in, out, routed string }{
		"response":               {in: `{"id":1,"result":{"a":[1]}}` + "\n", out: stub(1), routed: `1={"a":[1]}`},
		"windows line end":       {in: "{\"id\":1,\"result\":null}\r\n", out: stub(1), routed: `1=null`},
		"indented":               {in: "  {\"id\":1,\"result\":{}, \"error\":null} \n", out: stub(1), routed: `1={}`},
		"no last line end":       {in: `{"id":1,"error":{}}`, out: `{"id":1,"error":{}}` + "\n"},
		"string id":              {in: `{"id":"12","result":{"id":"3"}}` + "\n", out: stub(12), routed: `12={"id":"3"}`},
		"string id, error":       {in: `{"error":{},"id":"12"}` + "\n", out: `{"error":{},"id":12}` + "\n"},
		"other string id":        {in: `{"id":"a1","result":{}}` + "\n"},
		"id with zeros":          {in: `{"id":"012","result":{}}` + "\n"},
		"nobody waits":           {in: `{"id":1000,"result":{}}` + "\n"},
		"notification":           {in: `{"method":"n","params":{"a":1}}` + "\n", routed: `"n"{"a":1}`},
		"null id":                {in: `{"id":null,"method":"n"}` + "\n", routed: `"n"`},
		"request":                {in: `{"id":"x","method":"ping"}` + "\n", routed: `"ping""x"`},
		"log line":               {in: "starting on port 1\n"},
		"array":                  {in: "[]\n"},
		"empty":                  {in: "\n\n \n"},
		"cut":                    {in: `{"id":1,"result":` + "\n"},
		"neither result nor id":  {in: `{"a":1}` + "\n"},
		"answer to nothing":      {in: `{"id":null,"error":{}}` + "\n"},
		"NaN":                    {in: `{"id":5,"result":{"v":NaN}}` + "\n", out: string(errorFrame([]byte("5"), codeFrameInvalid))},
		"NaN in a notification":  {in: `{"method":"n","params":{"v":NaN}}` + "\n"},
		"too long":               {in: `{"id":6,"result":"` + long + `"}` + "\n", out: string(errorFrame([]byte("6"), codeFrameTooLarge))},
		"too long, id last":      {in: `{"result":"` + long + `","jsonrpc":"2.0","id":"7"}` + "\n", out: string(errorFrame([]byte("7"), codeFrameTooLarge))},
		"too long, id then rest": {in: `{"result":"` + long + `","id":8,"jsonrpc":"2.0"}` + "\n", out: string(errorFrame([]byte("8"), codeFrameTooLarge))},
		"too long, notification": {in: `{"method":"n","params":"` + long + `"}` + "\n"},
		"too long, no frame":     {in: long + "\n"},
	}
	for name, tt := range tests {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytewise": iotest.OneByteReader,
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				next := `{"id":99,"error":{}}` + "\n"
				in := tt.in
				if !strings.HasSuffix(in, "\n") {
					next = ""
				}
				out, to, r := readFrames(wrap(strings.NewReader(in+next)), limit, 1<<20)
				if want := tt.out + next; out != want {
					t.Errorf("out %q, want %q", out, want)
				}
				if got := strings.Join(slices.Concat(to.notifications, to.requests, to.results), " "); got != tt.routed {
					t.Errorf("routed %q, want %q", got, tt.routed)
				}
				if !errors.Is(r.err, io.EOF) {
					t.Errorf("ended with %v", r.err)
				}
			})
		}
	}
}

// A line larger than every buffer is dropped as it comes.
func TestFrameReaderLongLines(t *testing.T) {
	const limit = 100 << 10
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, limit - 30, limit + 1, 10 * limit} {
		frame := `{"id":3,"result":"` + strings.Repeat("y", size-20) + `"}` + "\n"
		out, to, _ := readFrames(strings.NewReader(frame+`{"id":4,"error":{}}`+"\n"), limit, 1<<30)
		want, shelved := `{"jsonrpc":"2.0","id":3,"result":{}}`+"\n", 1
		if len(frame) > limit {
			want, shelved = string(errorFrame([]byte("3"), codeFrameTooLarge)), 0
		}
		if out != want+`{"id":4,"error":{}}`+"\n" || len(to.results) != shelved {
			t.Errorf("size %d: %d results, %q", size, len(to.results), out)
		}
		if shelved == 1 && to.results[0] != `3="`+strings.Repeat("y", size-20)+`"` {
			t.Errorf("size %d: a result of %d bytes came through", size, len(to.results[0]))
		}
	}
}

func TestJunkBudget(t *testing.T) {
	line := strings.Repeat("j", 99) + "\n"
	endless := func(s string) io.Reader { return &repeater{s: s} }
	for name, src := range map[string]io.Reader{
		"lines": endless(line), "one line": endless("jjjj"), "empty lines": endless("\n"),
		"one frame": io.MultiReader(strings.NewReader(`{"result":"`), endless("jjjj")),
	} {
		out, _, r := readFrames(src, 1000, 10000)
		if out != "" || !errors.Is(r.err, errJunkFlood) {
			t.Errorf("%s: %q, %v", name, out, r.err)
		}
	}
	now := time.Unix(0, 0)
	j := &junkLog{budget: 100, now: func() time.Time { return now }}
	if !j.charge(100) || j.charge(1) {
		t.Error("the budget is 100")
	}
	now = now.Add(junkSpan)
	if !j.charge(100) {
		t.Error("the budget is per span")
	}
}

type repeater struct{ s string }

func (r *repeater) Read(p []byte) (int, error) {
	n := 0
	for n+len(r.s) <= len(p) {
		n += copy(p[n:], r.s)
	}
	return n, nil
}

func TestJunkLinesAreRedactedBeforeTheyAreCut(t *testing.T) {
	secret := strings.Repeat("s3cret", 100)
	j := &junkLog{budget: 1 << 20, now: time.Now, redact: NewRedactor(secret)}
	j.line([]byte(strings.Repeat("a", junkShown-5) + secret + "b"))
	if got := j.snapshot().Last[0]; strings.Contains(got, "s3c") || len(got) > junkShown {
		t.Fatalf("kept %q", got)
	}
}

// Whatever a server prints, what comes out is lines of valid JSON responses with an id.
func FuzzFrameReader(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":{}}` + "\nnoise\n" + `{"id":"2","result":{"a":"}"}}`))
	f.Add([]byte(`{"result":"` + strings.Repeat("x", 300) + `","id":3}` + "\n"))
	f.Add([]byte(`{"id":1,"result":NaN}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, to, _ := readFrames(bytes.NewReader(data), 200, 1<<20)
		for _, result := range to.results {
			if _, value, _ := strings.Cut(result, "="); !json.Valid([]byte(value)) {
				t.Fatalf("result %q of %q", value, data)
			}
		}
		for line := range strings.Lines(out) {
			var m struct {
				ID     json.RawMessage `json:"id"`
				Result json.RawMessage `json:"result"`
				Error  json.RawMessage `json:"error"`
			}
			if !json.Valid([]byte(line)) || len(line) > 300 {
				t.Fatalf("%q of %q", line, data)
			}
			if err := json.Unmarshal([]byte(line), &m); err == nil && m.ID == nil {
				t.Fatalf("%q has no id", line)
			}
		}
	})
}

func BenchmarkFrameReader(b *testing.B) {
	for _, size := range []int{100, 10 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			src := &repeater{s: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}}` + "\n"}
			r := newFrameReader(src, 16<<20, &junkLog{budget: 1, now: time.Now}, nothing{}, nothing{})
			b.SetBytes(int64(len(src.s)))
			b.ReportAllocs()
			for buf := make([]byte, 64<<10); b.Loop(); {
				if _, err := r.Read(buf); err != nil {
					b.Fatal(r.err)
				}
			}
		})
	}
}

// nothing takes everything and keeps nothing.
type nothing struct{}

func (nothing) notification([]byte, []byte) {}
func (nothing) asked(_, _, _ []byte)        {}
func (nothing) put(int64, []byte) bool      { return true }
