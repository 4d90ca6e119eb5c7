package plugin

import (
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Scopes are listed the narrowest first: of a plugin that is enabled in several the narrowest one is in force.
var Scopes = []string{"local", "project", "user"}

// KeptVersions is how many earlier versions of a plugin are kept for a rollback.
const KeptVersions = 3

// RecordSchema is the version of a Record as it is stored.
const RecordSchema = 1

// Record is what is known of one plugin in one scope: the pointer to its content, and the operator's word on it. It is a
// value; the methods return what it becomes.
type Record struct {
	Schema   int               `json:"schema"`
	ID       string            `json:"id"`
	Scope    string            `json:"scope"`
	Current  Version           `json:"current"`
	Staged   *Version          `json:"staged,omitempty"`   // a newer version that waits for a consent
	Previous []Version         `json:"previous,omitempty"` // the latest first
	Enabled  bool              `json:"enabled"`
	Disabled bool              `json:"disabled,omitempty"` // it was enabled, and the operator took that back
	Source   Source            `json:"source"`
	Values   map[string]string `json:"values,omitempty"` // of options
}

// Version is one content.
type Version struct {
	Digest  string    `json:"digest"`            // names the folder
	Version string    `json:"version,omitempty"` // what the manifest says, for people
	At      time.Time `json:"at"`                // when it was installed
	Consent *Consent  `json:"consent,omitempty"`
}

// Source is where a content was taken from.
type Source struct {
	Path   string `json:"path"`             // absolute: of a folder or an archive
	Plugin string `json:"plugin,omitempty"` // name of the offer, where Path is a marketplace
	Commit string `json:"commit,omitempty"` // where it is a git checkout
	Pin    string `json:"pin,omitempty"`    // the only digest that may be taken
}

// Digests lists every content that the record refers to.
func (r Record) Digests() []string {
	all := []string{r.Current.Digest}
	if r.Staged != nil {
		all = append(all, r.Staged.Digest)
	}
	for _, v := range r.Previous {
		all = append(all, v.Digest)
	}
	return all
}

// Consented returns the record with the operator's word on the current version, enabled.
func (r Record) Consented(brings string) Record {
	r.Current.Consent = &Consent{r.Current.Digest, r.Scope, brings}
	r.Enabled, r.Disabled = true, false
	return r
}

// Revoked returns the record disabled. Every consent is taken back, so that enabling it again asks again.
func (r Record) Revoked() Record {
	r.Disabled = r.Disabled || r.Enabled
	r.Enabled = false
	r.Current.Consent = nil
	r.Previous = slices.Clone(r.Previous)
	for i := range r.Previous {
		r.Previous[i].Consent = nil
	}
	return r
}

// Stage returns the record with a newer version. While the plugin is enabled the current one stays in force until the new
// one has a consent; else the new one simply takes its place.
func (r Record) Stage(v Version) Record {
	if v.Digest == r.Current.Digest {
		r.Staged = nil
		return r
	}
	r.Staged = &v
	if !r.Enabled {
		return r.advance()
	}
	return r
}

// Accepted returns the record with the staged version in force, by the operator's word.
func (r Record) Accepted(brings string) Record {
	if r.Staged == nil {
		return r
	}
	return r.advance().Consented(brings)
}

// advance makes the staged version the current one and keeps the former.
func (r Record) advance() Record {
	previous := []Version{r.Current}
	for _, v := range r.Previous {
		if v.Digest != r.Staged.Digest && len(previous) < KeptVersions {
			previous = append(previous, v)
		}
	}
	r.Previous, r.Current, r.Staged = previous, *r.Staged, nil
	return r
}

// RolledBack returns the record with the version before in force. A consent is bound to a content, so an earlier one that
// was not taken back still holds; without one the plugin is disabled.
func (r Record) RolledBack() (Record, error) {
	if len(r.Previous) == 0 {
		return r, vakerr.New(vakerr.InvalidRequest, "there is no earlier version of %s in scope %s", r.ID, r.Scope).
			WithRemedy("install the version you want from its source")
	}
	r.Current, r.Previous = r.Previous[0], slices.Clone(r.Previous[1:])
	r.Staged = nil
	if r.Current.Consent == nil {
		r.Enabled = false
	}
	return r, nil
}

// State is what an operator is shown.
type State string

// The states.
const (
	StateAvailable       State = "available"        // a marketplace offers it; it is not installed
	StateInstalled       State = "installed"        // and nobody consented to it yet
	StateNeedsReview     State = "needs-review"     // what it brings differs from what was consented to, or a newer version waits
	StateEnabled         State = "enabled"          // in force
	StateConnected       State = "connected"        // in force, and a server of it has a connection
	StateBlocked         State = "blocked"          // its content is not what was installed
	StateUpdateAvailable State = "update-available" // in force, and its source holds something else
	StateRevoked         State = "revoked"          // the operator disabled it
	StateIncompatible    State = "incompatible"     // this program cannot use it
)

// Facts are what a state depends on beside the record.
type Facts struct {
	Intact       bool   // the content is what its digest says
	Incompatible bool   // by its manifest
	Brings       string // digest of what it brings, as it is read now
	Source       string // digest of what its source holds now; empty: not known
	Connected    bool   // a server of it has a connection
}

// State decides.
func (r Record) State(f Facts) State {
	switch {
	case !f.Intact:
		return StateBlocked
	case f.Incompatible:
		return StateIncompatible
	case r.Disabled && !r.Enabled:
		return StateRevoked
	case !r.Enabled:
		return StateInstalled
	case r.Staged != nil || !r.Current.Consent.Covers(r.Current.Digest, r.Scope, f.Brings):
		return StateNeedsReview
	case f.Source != "" && f.Source != r.Current.Digest:
		return StateUpdateAvailable
	case f.Connected:
		return StateConnected
	}
	return StateEnabled
}

// InForce reports whether the plugin's parts are declared: the one bit that governs all of them.
func (r Record) InForce(f Facts) bool {
	return r.Enabled && f.Intact && !f.Incompatible && r.Current.Consent.Covers(r.Current.Digest, r.Scope, f.Brings)
}

// Pending is the version that a consent is asked for: the staged one, else the current one.
func (r Record) Pending() Version {
	if r.Staged != nil {
		return *r.Staged
	}
	return r.Current
}
