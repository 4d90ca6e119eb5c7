package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	ledgerv1 "github.com/vak-actors/vak-actors/messages/vak/ledger/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

// page is how many entries or sessions one question asks for.
const page = 1000

func (a *app) ledger() *cobra.Command {
	return group(&cobra.Command{
		Use:     "ledger",
		Short:   "Show, verify and export the records of sessions",
		Example: "  vak-actors ledger show my-session\n  vak-actors ledger verify",
	}, a.ledgerShow(), a.ledgerVerify(), a.ledgerExport())
}

func (a *app) ledgerShow() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "show SESSION", Short: "Print a session's record; with --json whole, one entry a line", Example: "  vak-actors ledger show my-session",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			if a.json {
				return a.eachEntry(c.Context(), l, args[0], a.lineWriter())
			}
			rows := [][]string{{"SEQ", "TIME", "KIND", "BODY"}}
			err = a.eachEntry(c.Context(), l, args[0], func(e ledger.Entry) error {
				rows = append(rows, []string{strconv.FormatUint(e.Seq, 10), e.At.Format("2006-01-02T15:04:05.000Z"), string(e.Kind), short(string(e.Body), 100)})
				return nil
			})
			if len(rows) > 1 { // what was read before an error is worth seeing
				table(a.out, rows)
			}
			return err
		},
	})
}

func (a *app) ledgerExport() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use:   "export [SESSION...]",
		Short: "Write the records of sessions as JSON, one entry a line",
		Long: `Writes every entry with its hash and the hash before, of the named sessions or of all. The file can be verified
anywhere with ` + "`vak-actors ledger verify --file`" + `, without the daemon and its data.`,
		Example: "  vak-actors ledger export > ledger.jsonl\n  vak-actors ledger verify --file ledger.jsonl",
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			write := a.lineWriter()
			for _, session := range args {
				if err := a.eachEntry(c.Context(), l, session, write); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				return nil
			}
			return a.eachSession(c.Context(), l, func(session string) error { return a.eachEntry(c.Context(), l, session, write) })
		},
	})
}

// lineWriter writes entries as lines of an export.
func (a *app) lineWriter() func(ledger.Entry) error {
	lines := json.NewEncoder(a.out)
	tenant := a.reach.tenant
	if tenant == "" {
		tenant = protocol.DefaultTenant
	}
	return func(e ledger.Entry) error { return lines.Encode(ledger.Exported{Tenant: tenant, Entry: e}) }
}

// eachEntry visits a session's entries in order.
func (a *app) eachEntry(ctx context.Context, l *link, session string, visit func(ledger.Entry) error) error {
	for from := uint64(1); ; {
		r, err := api.Call(ctx, l.Ledger.ReadLedger, &ledgerv1.ReadLedger{Tenant: a.reach.tenant, SessionId: session, FromSeq: from, Limit: page})
		if err != nil {
			return err
		}
		for _, m := range r.GetEntries() {
			e, err := wire.LedgerEntry(session, m)
			if err != nil {
				return err
			}
			if err := visit(e); err != nil {
				return err
			}
		}
		if from = r.GetNextSeq(); from == 0 || len(r.GetEntries()) == 0 {
			return nil
		}
	}
}

// eachSession visits the ids of the tenant's sessions in order.
func (a *app) eachSession(ctx context.Context, l *link, visit func(id string) error) error {
	for after := ""; ; {
		r, err := api.Call(ctx, l.Session.ListSessions, &sessionv1.ListSessions{Tenant: a.reach.tenant, After: after, Limit: page})
		if err != nil {
			return err
		}
		for _, s := range r.GetSessions() {
			if err := visit(s.GetSessionId()); err != nil {
				return err
			}
		}
		if after = r.GetNext(); after == "" {
			return nil
		}
	}
}

func (a *app) ledgerVerify() *cobra.Command {
	var file string
	c := a.reaches(&cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Check the hash chains: of one session, of all, or of an export",
		Long: `Recomputes every hash. Exit code 0: every record is what was written; 1: faults, each printed with session and
sequence.`,
		Example: "  vak-actors ledger verify\n  vak-actors ledger verify --file ledger.jsonl   # - reads standard input",
		Args:    arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			var found ledger.Verified
			var err error
			if file != "" {
				found, err = a.verifyFile(file)
			} else {
				found, err = a.verifyStore(c.Context(), args)
			}
			if err != nil {
				return err
			}
			return a.printVerified(found)
		},
	})
	c.Flags().StringVar(&file, "file", "", "verify an export instead of the ledger")
	return c
}

func (a *app) verifyStore(ctx context.Context, args []string) (ledger.Verified, error) {
	l, err := a.open(ctx)
	if err != nil {
		return ledger.Verified{}, err
	}
	defer l.close()
	m := &ledgerv1.VerifyLedger{Tenant: a.reach.tenant}
	if len(args) > 0 {
		m.SessionId = args[0]
	}
	r, err := api.Call(ctx, l.Ledger.VerifyLedger, m)
	if err != nil {
		return ledger.Verified{}, err
	}
	return ledger.Verified{Sessions: int(r.GetSessions()), Entries: int(r.GetEntries()), Faults: orEmpty(r.GetFaults())}, nil
}

func (a *app) verifyFile(name string) (found ledger.Verified, err error) {
	if name == "-" {
		return ledger.VerifyExport(a.in)
	}
	f, err := os.Open(name)
	if err != nil {
		return found, vakerr.New(vakerr.FileNotFound, "the export %s cannot be opened", name).WithRemedy("check its path").WithCause(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return ledger.VerifyExport(io.Reader(f))
}

func (a *app) printVerified(found ledger.Verified) error {
	if a.json {
		if err := printJSON(a.out, found); err != nil {
			return err
		}
	} else {
		for _, fault := range found.Faults {
			fmt.Fprintf(a.out, "fault: %s\n", clean(fault))
		}
		fmt.Fprintf(a.out, "%s, %s, %s\n", count(found.Sessions, "session"), count(found.Entries, "entry"), count(len(found.Faults), "fault"))
	}
	if len(found.Faults) > 0 {
		return exit{status: exitFindings}
	}
	return nil
}
