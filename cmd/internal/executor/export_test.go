package executor

// LastOutput is for the tests.
const LastOutput = lastOutput
