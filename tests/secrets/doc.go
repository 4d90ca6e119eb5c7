// Package secrets looks for secrets where none may be: it runs the program as a daemon with a canary in every place that a
// secret can stand, uses it through every door, lets everything fail, and searches what came out for the canaries.
//
// A secret may stand where the user put it (vak.toml, .mcp.json, a plugin and its installed copy, secrets.env, the
// environment), in the environment and the requests of the server or hook it is meant for, and on the command line of a
// server whose args name it. Arguments of calls are recorded as they were sent, and a result is free only of what goes by the
// name of a secret: it is data.
package secrets
