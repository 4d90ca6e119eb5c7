package cli

import (
	"fmt"
	"io"

	"github.com/vak-actors/vak-actors/capability"
)

// printProblem prints a problem as compilers do, so that editors find the place.
func printProblem(w io.Writer, p capability.Problem) {
	place := p.Path
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d", p.Path, p.Line)
	}
	fmt.Fprintf(w, "%s: %s: %s [%s]\n", clean(place), p.Severity, clean(p.Message), p.Code)
	if p.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", clean(p.Hint))
	}
}
