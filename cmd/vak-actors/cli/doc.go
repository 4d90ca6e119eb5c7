// Package cli is the program's command line: one file a verb. A verb reads its flags, makes calls and prints the answer;
// it decides nothing.
//
// Every verb that needs the runtime speaks vak.v1 to it, whether a daemon answers or the verb carries the runtime inside
// for the time of its call (see open). It is a package of its own, and not package main, so that the tests can run the
// whole program in their process.
//
// Exit codes, which scripts rely on: 0 done; 1 findings (check, doctor, ledger verify); 2 the verb could not run (wrong
// usage; for check and doctor any failure); 3 refused, with a typed error on stderr; 4 the tool ran and failed.
package cli
