package turn

import "testing"

// Readers of JSON take keys for equal that differ in case, in escapes, or by a letter of the same fold.
func TestDistinctKeys(t *testing.T) {
	for text, distinct := range map[string]bool{
		`{}`:                            true,
		`{"a":1,"b":2}`:                 true,
		`{"a":1,"a":2}`:                 false,
		`{ "a" : 1 , "A" : 2 }`:         false,
		`{"a":1,"\u0061":2}`:            false,
		`{"kind":1,"\u212aind":2}`:      false, // the Kelvin sign
		`{"server":1,"ſerver":2}`:       false, // the long s
		`{"a":{"b":1,"b":2},"b":3}`:     true,  // those within are the tool's affair
		`{"a":{"c":[{"a":1}]},"b":"a"}`: true,
		`{"a":["a","a"],"b":"}","c":0}`: true,
		`{"a":"\"","b":"\\","a":1}`:     false,
		`{"\"":1,"\\":2,"\\\"":3}`:      true,
		`{"":1,"":2}`:                   false,
	} {
		if err := distinctKeys("tool", []byte(text)); (err == nil) != distinct {
			t.Errorf("%s: %v", text, err)
		}
	}
}
