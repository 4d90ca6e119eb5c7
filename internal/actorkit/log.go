package actorkit

import (
	"context"
	"log/slog"
)

// textOnly stands between protoactor and our log: it lets through warnings and errors, and of those the constant text
// only, because protoactor's attributes are whole messages and failure values (H20).
type textOnly struct{ to slog.Handler }

// Enabled implements slog.Handler.
func (h textOnly) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.to.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h textOnly) Handle(ctx context.Context, r slog.Record) error {
	bare := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	bare.AddAttrs(slog.String("from", "protoactor"))
	return h.to.Handle(ctx, bare)
}

// WithAttrs implements slog.Handler; the attributes are dropped.
func (h textOnly) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements slog.Handler; the group is dropped with its attributes.
func (h textOnly) WithGroup(string) slog.Handler { return h }
