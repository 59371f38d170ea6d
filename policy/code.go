package policy
// CodeRules placeholder
type CodeRules struct{}
