/**
 * The tables of verbs by which objects answer over RPC. Each is declared where it stands, in a room that this one does
 * not import: what callers see follows from the table.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the rooms of the objects add their tables
export interface VerbTables {}
