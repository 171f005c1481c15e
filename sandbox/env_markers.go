package sandbox

// Markers are variables by which a program can tell that it is confined, for
// instance a test that needs the network to skip itself. They are set only for
// a command that really is: a provider adds them when everything else is settled,
// Environment keeps them from all others, and no request can set them.
//
// They help honest programs and prove nothing: what a command starts can be
// given any variables.
const (
	// MarkerSandbox is the name of the provider: bwrap, landlock, seatbelt or opensandbox.
	MarkerSandbox = ownPrefix + "SANDBOX"

	// MarkerNoNetwork is 1 where nothing outside the session can be reached by
	// network.
	MarkerNoNetwork = ownPrefix + "SANDBOX_NETWORK_DISABLED"
)

// Markers are the variables for a command of which this is known.
func Markers(f Facts) map[string]string {
	if !f.Mode.Confined() || f.Provider == "" || f.Provider == ProviderNone {
		return nil
	}
	markers := map[string]string{MarkerSandbox: f.Provider}
	if f.Facets[Network].State == Enforced {
		markers[MarkerNoNetwork] = "1"
	}
	return markers
}
