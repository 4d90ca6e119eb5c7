package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// maxWord bounds the answer to a question that one word answers, in bytes.
const maxWord = 64

// ask puts a question beside the output and returns the line that answers it, without the spaces around; empty where nobody
// answers.
func (a *app) ask(question string) string {
	fmt.Fprint(a.errs, question)
	line, _ := bufio.NewReader(io.LimitReader(a.in, maxWord)).ReadString('\n')
	fmt.Fprintln(a.errs)
	return strings.TrimSpace(line)
}
