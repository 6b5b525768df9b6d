/** The tools as clients see them, built by `.ci/ui.mjs` from `docs/reference/mcp.json`. The module is not committed. */
import type { Scope } from '../job/access';
import type { Tool } from './core';

export const tools: readonly {
  tool: Tool;
  scope: Scope;
  /** May keys with bounds call it? */
  bound: boolean;
  /** The mounted paths, in the order of the table; and those that are looked at before. */
  paths: readonly string[];
  looks: readonly (string | null)[];
}[];

/** The members of a job that the contract names: others are those of an application. */
export const jobMembers: readonly string[];
