package local

func (p resolved) close() {
	if p.script != nil {
		p.script.Close()
	}
}

// named is the path of the program as a request or we name it, empty if there
// is a script: then it is a shell, or the script itself.
func (p resolved) named() string {
	if p.script != nil {
		return ""
	}
	return p.path
}
