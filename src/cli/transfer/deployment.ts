/** What a deployment has beside its queues: settings of all queues, overrides of limit keys, schemas. */
import { isDeepStrictEqual } from 'node:util';
import type { TocsinClient } from '../../client/client';
import { EXPORT_VERSION, type Part, PartWriter } from '../../export/file';
import { own } from '../../job/own';
import { wired } from '../../producer/names';
import { orNone } from '../failure';

type Line =
  | { defaults: Record<string, unknown> }
  | { override: { key: string } & Record<string, unknown> }
  | { schema: { type: string; version: string | number; schema: Record<string, unknown> } }
  | { queue: string };

/** The section of what is not in the queues. @param queues those that follow */
export async function* deploymentText(tocsin: TocsinClient, queues: readonly string[]): AsyncGenerator<string> {
  const writer = new PartWriter({ tocsin: 'export', version: EXPORT_VERSION, queue: null, ended: false });
  yield writer.begin();
  for await (const line of linesOfDeployment(tocsin, queues)) {
    const text = await writer.add(JSON.stringify(line));
    if (text !== '') yield text;
  }
  yield await writer.end({}, {});
}

async function* linesOfDeployment(tocsin: TocsinClient, queues: readonly string[]): AsyncGenerator<Line> {
  const { config } = await tocsin.queues.defaults();
  yield { defaults: wired(config) as Record<string, unknown> };
  for await (const { key, override } of tocsin.rateLimits.list()) {
    if (override) yield { override: { key, ...(wired(override) as object) } };
  }
  for await (const { type, version, schema } of tocsin.schemas.list()) yield { schema: { type, version, schema } };
  for (const queue of queues) yield { queue };
}

export interface DeploymentImported {
  imported: number;
  known: number;
  not_kept: Record<string, number>;
}

/** Puts a part of the section into a deployment. What is there already stays. */
export async function importDeployment(
  tocsin: TocsinClient,
  { lines }: Part,
  dryRun: boolean,
  come: DeploymentImported,
): Promise<void> {
  for (const text of lines) {
    const line = JSON.parse(text) as Line;
    if ('queue' in line) continue;
    const [[kind = '', wanted]] = Object.entries(line) as [[string, unknown]];
    const present = await presentOf(tocsin, line);
    if (present === undefined) {
      come.imported++;
      if (!dryRun) await put(tocsin, line);
    } else if (isDeepStrictEqual(present, wanted)) come.known++;
    else come.not_kept[kind] = (own(come.not_kept, kind) ?? 0) + 1;
  }
}

/** What stands in its place; undefined: nothing. */
async function presentOf(tocsin: TocsinClient, line: Line): Promise<unknown> {
  if ('defaults' in line) {
    const { config } = await tocsin.queues.defaults();
    return Object.keys(config).length === 0 && Object.keys(line.defaults).length > 0 ? undefined : wired(config);
  }
  if ('override' in line) {
    const { key } = line.override;
    const override = (await orNone(tocsin.rateLimits.get(key), undefined))?.override;
    return override && { key, ...(wired(override) as object) };
  }
  if (!('schema' in line)) return undefined;
  const { type, version } = line.schema;
  const registered = await orNone(tocsin.schemas.get(type, version), undefined);
  return registered && { type, version, schema: registered.schema };
}

async function put(tocsin: TocsinClient, line: Line): Promise<void> {
  if ('defaults' in line) await tocsin.queues.setDefaults(line.defaults);
  else if ('override' in line) {
    const { key, expires_at: expiresAt, ...limits } = line.override;
    await tocsin.rateLimits.override(key, { ...limits, expiresAt } as never);
  } else if ('schema' in line) {
    const { type, version, schema } = line.schema;
    await tocsin.schemas.put(type, version, schema);
  }
}
