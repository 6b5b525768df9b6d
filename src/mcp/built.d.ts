/** Built by `.ci/ui.mjs` from `docs/reference/mcp.json`. The module is not committed. */
export const tools: readonly {
  tool: {
    name: string;
    inputSchema: { properties: Record<string, unknown>; required: string[] };
    annotations: { readOnlyHint: boolean };
  };
  scope: import('../access/access').Scope;
  /** May keys with bounds call it? */
  bound: boolean;
  /** As they are mounted, in the order of the table; and those of what is looked at before. */
  paths: readonly string[];
  looks: readonly (string | null)[];
}[];

/** The members of a job that the contract names: others are those of an application. */
export const jobMembers: readonly string[];
