// Package real runs the built program against real clients and servers: the MCP Inspector and published MCP servers, over
// HTTP and over pipes. It holds no code of the product. The programs are found by tests/realparts.
package real
