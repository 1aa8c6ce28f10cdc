package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// oldForm is what a server of the 2025-06-18 generation asks with: enumNames
// is the only way in which that revision can give options a title.
const oldForm = `{"type":"object","properties":{
	"size":{"type":"string","title":"Size","enum":["s","m","l"],"enumNames":["Small","Medium","Large"],"default":"m"},
	"cups":{"type":"integer","minimum":1,"maximum":4}},
	"required":["size","cups"]}`

// oldServer is a server as they were in the summer of 2025, with an icon on
// somebody else's host besides.
func oldServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "old-coffee", Version: "0.9"}, &mcp.ServerOptions{
		SupportedProtocolVersions: []string{"2025-06-18"},
	})
	server.AddTool(&mcp.Tool{
		Name:        "order_coffee",
		Description: "Asks for a size and a number of cups.",
		InputSchema: json.RawMessage(`{"type":"object"}`),
		Icons: []mcp.Icon{
			{Source: "https://tracker.example/pixel.png?user=42", MIMEType: "image/png"},
			{Source: demoIcon(), MIMEType: "image/png"},
		},
	}, orderCoffee)
	return server
}

func orderCoffee(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text := func(s string) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}, nil
	}
	answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Your order?", RequestedSchema: json.RawMessage(oldForm)})
	if err != nil {
		return text(strings.TrimPrefix(err.Error(), `calling "elicitation/create": `))
	}
	if answer.Action != "accept" {
		return text("no order: " + answer.Action)
	}
	return text(fmt.Sprintf("%v cups of size %v", answer.Content["cups"], answer.Content["size"]))
}

// demoIcon is a small picture as a data: URI.
func demoIcon() string {
	m := image.NewNRGBA(image.Rect(0, 0, 16, 16))
	for i := range 16 * 16 {
		m.Set(i%16, i/16, color.NRGBA{0x6f, 0x4e, 0x37, 0xff})
	}
	var b strings.Builder
	b.WriteString("data:image/png;base64,")
	w := base64.NewEncoder(base64.StdEncoding, &b)
	_ = png.Encode(w, m) // into memory, of a picture that is valid
	_ = w.Close()
	return b.String()
}
