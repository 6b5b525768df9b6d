/** What the processes of a server use, and what its files take; from /proc, so on Linux alone. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Of a process and all that descend from it: `cpuMs` since they began, those that ended included, and `rssMb` now. */
export function usage(pids) {
  const all = processes();
  const own = new Set(pids);
  // Parents have smaller numbers than their children, but for a wrap: two rounds are enough for the few levels here.
  for (let round = 0; round < 2; round++) for (const { pid, parent } of all) if (own.has(parent)) own.add(pid);
  let ticks = 0;
  let rssMb = 0;
  for (const process of all) {
    if (!own.has(process.pid)) continue;
    ticks += process.ticks + process.ticksOfEnded;
    rssMb += residentMb(process.pid);
  }
  return { cpuMs: ticks * 10, rssMb };
}

function processes() {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1).split(' ').map(Number);
      const [parent, ticks, ticksOfEnded] = [fields[1], fields[11] + fields[12], fields[13] + fields[14]];
      return [{ pid: Number(name), parent, ticks, ticksOfEnded }];
    } catch {
      // It ended meanwhile.
      return [];
    }
  });
}

/** Memory of its own: what processes share, as those of PostgreSQL do, is not counted once for each. */
function residentMb(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kb = (name) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? 0);
    return (kb('RssAnon') + kb('RssFile')) / 1024;
  } catch {
    return 0;
  }
}

/** Bytes of the files below a folder, logs of writes included. */
export function bytesBelow(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    try {
      bytes += statSync(join(entry.parentPath, entry.name)).size;
    } catch {
      // It was removed meanwhile.
    }
  }
  return bytes;
}
