package policy

// ServerSection overrides the rest of the policy for the servers that it
// matches: every one of Name, Command and URL that it gives must match.
type ServerSection struct {
	Name    string `yaml:"name" doc:"The name that the server has in the client's configuration."`
	Command string `yaml:"command" type:"glob" doc:"The server's command line, words joined by spaces; \\* stands for any characters."`
	URL     string `yaml:"url" type:"glob" doc:"The server's URL; \\* stands for any characters."`
}
