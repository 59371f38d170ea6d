//go:build !nightly

package isolatetest

// everyUser says whether RunOnOtherLevels tests a level as every user.
const everyUser = false
