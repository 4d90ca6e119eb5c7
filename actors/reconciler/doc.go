// Package reconciler is the loop that keeps a tenant's declared world current.
//
// It is level-triggered: a ticker and debounced hints cause the same pass, which reads the whole workspace and hands
// what it found to the registry. A hint (a file event, a server's list_changed, an operator's reload) only makes the
// pass run sooner; losing one costs at most a tick. A pass starts no process and speaks to nothing outside. Passes never
// overlap, and a tick that comes due during one is not replayed.
package reconciler
