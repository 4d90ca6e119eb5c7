package lifecycle

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/internal/api"
)

// A host in any language learns that a call waits, and answers it, with plain JSON over HTTP.
func TestApprovalsOverJSON(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": asking})
	server := httptest.NewServer(api.NewHandler(api.Options{Door: w.door}))
	defer server.Close()
	post := func(method, body string) (status int, answer map[string]any) {
		t.Helper()
		r, err := server.Client().Post(server.URL+"/vak.v1."+method, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, answer
	}
	news := make(chan map[string]any, 1)
	go func() {
		_, answer := post("ApprovalService/ListApprovals", `{"waitMs":30000}`)
		news <- answer
	}()
	_, opened := post("SessionService/OpenSession", `{"attended":true}`)
	session := opened["session"].(map[string]any)["sessionId"].(string)
	result := make(chan map[string]any, 1)
	go func() {
		_, answer := post("SessionService/Dispatch", `{"sessionId":"`+session+`","name":"write","argumentsJson":"eyJwYXRoIjoic2VjcmV0L2EiLCJjb250ZW50IjoieCJ9"}`)
		result <- answer
	}()
	waiting := (<-news)["approvals"].([]any)
	if len(waiting) != 1 {
		t.Fatalf("%d calls wait", len(waiting))
	}
	q := waiting[0].(map[string]any)
	if q["sessionId"] != session || q["action"] != "write(secret/a)" || q["inputDigest"] == "" {
		t.Errorf("what waits: %v", q)
	}
	answer := `{"id":"` + q["id"].(string) + `","decision":"DECISION_ALLOW","by":"host"}`
	if status, got := post("ApprovalService/AnswerApproval", answer); status != http.StatusOK {
		t.Errorf("%d %v", status, got)
	}
	if got := <-result; got["resultJson"] == nil || got["refusal"] != nil || !w.exists("secret/a") {
		t.Errorf("the call: %v", got)
	}
	if status, got := post("ApprovalService/AnswerApproval", answer); status == http.StatusOK || !strings.Contains(got["message"].(string), "answered before") {
		t.Errorf("the second answer: %d %v", status, got)
	}
}
