package mcpio

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestScanEnvelope(t *testing.T) {
	tests := []struct {
		in, id, method, params string
		response, ok           bool
	}{
		{in: `{}`, ok: true},
		{in: `{"jsonrpc":"2.0","id":7,"result":{"id":8,"method":"x"}}`, id: "7", response: true, ok: true},
		{in: `{"result":{"a":"}\"\\"},"id":"x\"y"}`, id: `"x\"y"`, response: true, ok: true},
		{in: ` { "method" : "m" , "params" : [ "]" , {} ] } `, method: `"m"`, params: `[ "]" , {} ]`, ok: true},
		{in: `{"id":4,"error":null}`, id: "4", ok: true},
		{in: `{"id":null,"error":{}}`, response: true, ok: true},
		{in: `{"id":1} x`, id: "1"},
		{in: `{"id":3,"result":{"text":"cut of`, id: "3"},
		{in: `{"id":3`},
		{in: `{"id"`},
		{in: `{"id":`},
		{in: `{"a\`},
		{in: `[1]`},
		{in: ``},
	}
	for _, tt := range tests {
		e, ok := scanEnvelope([]byte(tt.in))
		if string(e.id) != tt.id || string(e.method) != tt.method || string(e.params) != tt.params ||
			e.response() != tt.response || ok != tt.ok {
			t.Errorf("%s: id %s, method %s, params %s, response %t, ok %t", tt.in, e.id, e.method, e.params, e.response(), ok)
		}
		if e.id != nil && !strings.HasPrefix(tt.in[e.idAt:], string(e.id)) {
			t.Errorf("%s: the id is not at %d", tt.in, e.idAt)
		}
	}
}

// The scanner must agree with the JSON decoder on every message that is JSON.
func FuzzScanEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"\\\"}"}]}}`))
	f.Add([]byte(`{"method":"m","params":{"a":[1,2,{"b":null}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, ok := scanEnvelope(data)
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || want == nil || strings.ContainsRune(string(data), '\\') {
			return // no object, or keys that may be escaped
		}
		if !ok {
			t.Fatalf("%q is a JSON object and is refused", data)
		}
		if string(e.result) != string(want["result"]) || string(e.method) != string(want["method"]) || string(e.params) != string(want["params"]) {
			t.Fatalf("%q: method %s, params %s", data, e.method, e.params)
		}
	})
}
