/** The document of the API as `.ci/ui.mjs` makes it from `docs/reference/openapi.json`; the module itself is not committed. */

/** JSON text, without descriptions. */
export const document: string;
