/** How many files the runtime may have open: the limit of this program, which Node raises as far as it may. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Open files of a queue that is in use: its database, the log of that, and their index. */
const PER_QUEUE = 3;
/** Fewer than this end the runtime under ordinary load. */
const ENOUGH = 4_096;

/** What to warn of; none: there are enough, or the limit is not known. */
export function openFilesWarning(): string[] {
  const limit = openFileLimit();
  if (limit === undefined || Number.isNaN(limit) || limit >= ENOUGH) return [];
  return [
    `the limit of open files is ${limit}; each queue in use takes ${PER_QUEUE} and each connection one, and the runtime ends when none is left: raise the limit to at least ${ENOUGH} (LimitNOFILE in systemd, ulimit -n in a shell)`,
  ];
}

/** NaN: there is no limit. */
function openFileLimit(): number | undefined {
  try {
    if (process.platform === 'win32') return undefined;
    if (process.platform !== 'linux') return Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }));
    return Number(/^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}
