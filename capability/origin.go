package capability

// OriginKind is where a declaration came from.
type OriginKind uint8

// The origins, in order of precedence where names collide within one kind (the first wins): what the operator wrote for
// this workspace beats what is shared by the user, which beats plugins.
const (
	OriginUnspecified OriginKind = iota
	OriginBuiltin                // compiled into this program
	OriginRuntime                // registered by the embedding program while it runs
	OriginWorkspace              // the tenant's own files
	OriginShared                 // the user's files, shared by workspaces
	OriginPlugin                 // an installed plugin
)

var originNames = [...]string{"unspecified", "builtin", "runtime", "workspace", "shared", "plugin"}

// String is the label of an origin that is no plugin.
func (o OriginKind) String() string {
	if int(o) >= len(originNames) {
		return originNames[0]
	}
	return originNames[o]
}

// Origin tells where a declaration came from. Plugin and Scope are set for plugins only.
type Origin struct {
	Kind   OriginKind
	Plugin string // plugin id
	Scope  string // the scope it was installed in: user, project, local
}

// Label is what reports print; plugin:<scope>:<plugin> for a plugin.
func (o Origin) Label() string {
	if o.Kind == OriginPlugin {
		return "plugin:" + o.Scope + ":" + o.Plugin
	}
	return o.Kind.String()
}
