/** The document of the API, built by `.ci/ui.mjs` from `docs/reference/openapi.json`. The module is not committed. */

/** JSON text. */
export const document: string;

/** The names that a route takes in its query and its body. */
interface Accepted {
  query: readonly string[];
  /** May the member be null? Absent: the contract has no JSON body. */
  body?: Readonly<Record<string, boolean>>;
  /** The body has members of any name besides these, or is not JSON. */
  isOpen: boolean;
}

/** By method and path as the document has it, such as `get /ojs/v1/jobs/{id}`. */
export const accepted: Readonly<Record<string, Accepted>>;
