package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Exported is one line of an export: an entry with the tenant that its chain is bound to. A session's entries stand in
// order, from the first one on; those of several sessions may be mixed.
type Exported struct {
	Tenant string `json:"tenant"`
	Entry
}

// Verified is what a verification of an export found.
type Verified struct {
	Sessions int      `json:"sessions"`
	Entries  int      `json:"entries"`
	Faults   []string `json:"faults"` // the first fault of each broken session; at most maxFaults
}

// Bounds of an export that is verified.
const (
	maxExportLine     = 2*MaxBody + 16<<10 // bytes of one line
	maxExportSessions = 1 << 20
	maxFaults         = 100
)

// VerifyExport checks every chain of an export, without the store it came from. What it cannot see is a tail that was
// left out, for only the store knows the end. The error is invalid_request or too_large: lines that are no export, or that
// cannot be read.
func VerifyExport(lines io.Reader) (Verified, error) {
	type chain struct {
		tenant  string
		session SessionID
	}
	found := Verified{Faults: []string{}}
	chains := map[chain]*Verifier{} // nil once broken
	scan := bufio.NewScanner(lines)
	scan.Buffer(make([]byte, 0, 64<<10), maxExportLine)
	for n := 1; scan.Scan(); n++ {
		var e Exported
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil || e.Tenant == "" || e.Session == "" {
			return found, vakerr.New(vakerr.InvalidRequest, "line %d is no entry of an export", n).
				WithRemedy("give it the output of `vak-actors ledger export`").WithCause(err)
		}
		found.Entries++
		of := chain{e.Tenant, e.Session}
		v, known := chains[of]
		if !known {
			if len(chains) == maxExportSessions {
				return found, vakerr.New(vakerr.TooMany, "more than %d sessions in one export", maxExportSessions)
			}
			v = NewVerifier(e.Tenant, e.Session)
			chains[of] = v
			found.Sessions++
		}
		if v == nil {
			continue
		}
		if err := v.Next(e.Entry); err != nil {
			chains[of] = nil
			if len(found.Faults) < maxFaults {
				found.Faults = append(found.Faults, vakerr.From(err).Reason)
			}
		}
	}
	return found, exportError(scan.Err())
}

func exportError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bufio.ErrTooLong):
		return vakerr.New(vakerr.TooLarge, "a line of the export has more than %d bytes", maxExportLine)
	}
	return vakerr.New(vakerr.InvalidRequest, "the export cannot be read to its end").WithCause(err)
}
