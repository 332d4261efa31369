package quick

// NeverBlocks tells whether a call can't block, whatever mode the socket is in.
const NeverBlocks = neverBlocks
