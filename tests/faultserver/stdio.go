package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
)

// serveStdio reads frames from stdin until it ends.
func serveStdio(s *server) {
	var mu sync.Mutex
	send := func(frame []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.Write(append(slices.Clip(frame), '\n'))
	}
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			fatal(err)
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		s.handle(m, send)
		if s.o.deafOn != "" && m.Method == s.o.deafOn {
			select {}
		}
	}
}
