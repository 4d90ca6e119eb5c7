package config

import (
	"testing"
	"time"
)

// A server whose command may have to fetch it first gets the time for that, unless the entry says otherwise.
func TestStartTime(t *testing.T) {
	for _, c := range []struct {
		command string
		args    []string
		written time.Duration
		want    time.Duration
	}{
		{"npx", []string{"-y", "some-server"}, 0, installTime},
		{"/usr/local/bin/uvx", []string{"some-server"}, 0, installTime},
		{`C:\\node\\npx.cmd`, []string{"some-server"}, 0, installTime},
		{"npm", []string{"exec", "some-server"}, 0, installTime},
		{"npm", []string{"start"}, 0, startTime},
		{"uv", []string{"--directory", "run"}, 0, installTime},
		{"docker", []string{"run", "-i", "x"}, 0, installTime},
		{"docker", nil, 0, startTime},
		{"node", []string{"npx"}, 0, startTime},
		{"", nil, 0, startTime},
		{"npx", []string{"some-server"}, time.Second, time.Second},
	} {
		s := Server{Command: c.command, Args: c.args, StartTimeout: c.written}
		if got := s.StartTime(); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.command, c.args, got, c.want)
		}
	}
}
