/** Where wrangler has deployed to, from what it writes for programs. */
import { existsSync, readFileSync } from 'node:fs';

/** @param file of `WRANGLER_OUTPUT_FILE_PATH`: a JSON object on each line */
export function deployedAt(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  for (const line of readFileSync(file, 'utf8').split('\n').reverse()) {
    const { type, targets } = entryOf(line);
    if (type !== 'deploy' || !Array.isArray(targets)) continue;
    const urls = targets.flatMap((target) => addressOf(String(target)) ?? []);
    return urls[0];
  }
  return undefined;
}

function entryOf(line: string): { type?: unknown; targets?: unknown } {
  try {
    return JSON.parse(line) ?? {};
  } catch {
    return {};
  }
}

/** The URL of a target like `shop.example.com (custom domain)`; undefined for schedules, queues and wildcards. */
function addressOf(target: string): string | undefined {
  if (/^https?:\/\//.test(target)) return target.replace(/\/$/, '');
  const [, host] = /^([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?:\/\*)?(?: \(.*\))?$/i.exec(target) ?? [];
  return host && `https://${host}`;
}
