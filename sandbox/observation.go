package sandbox

// ObservationState says how far the refused operations of a run were seen.
type ObservationState string

// The closed set of states.
const (
	ObservedFully  ObservationState = "full"    // each refused operation of a kind that is observed is among the denials, or counted in one
	ObservedPartly ObservationState = "partial" // some may be missing; the reason says why
	NotObserved    ObservationState = "none"    // nobody looked: denials come from messages only
)

// What is observed are operations that change something by its name, connections
// and datagrams to an address. What is not, and then is known from messages at
// most: reading and executing, metadata changed by a descriptor that was open
// already (fchmod, futimens …), access(2), and sendmsg(2) with an address.

// Observation says how complete the denials of a run are.
type Observation struct {
	State   ObservationState `json:"state"`
	Reason  string           `json:"reason,omitempty"`  // why not full
	Omitted int              `json:"omitted,omitempty"` // refused operations that no denial counts, as far as known
}
