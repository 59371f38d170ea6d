package supervisor

// fence does nothing: amd64 shows the stores of another processor in their order, and
// Python makes them one by one.
func fence() {}
