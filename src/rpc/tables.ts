/** The verbs of objects over RPC, declared in their rooms, which this one does not import: callers' types follow. */
// biome-ignore lint/suspicious/noEmptyInterface: the rooms of the objects add their tables
export interface VerbTables {}
