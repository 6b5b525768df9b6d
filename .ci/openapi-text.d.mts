/** The document without what only explains. */
export function withoutDescriptions(document: unknown): unknown;
