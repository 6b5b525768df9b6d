/**
 * A PostgreSQL cluster of its own in a temporary folder, on a loopback port. Every commit is flushed to disk before it is
 * answered. The programs are those of this machine: beside `postgres` on PATH, or where `pg_config` says.
 */
import { spawnSync } from 'node:child_process';
import { chownSync, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { discard, scratch } from '../load/scratch.mjs';
import { freePort, start, stop } from '../servers/process.mjs';

export const NO_POSTGRES =
  'there is no postgres and initdb on PATH or where pg_config says (Debian: apt-get install postgresql).';

const output = (command, args) => {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
};

/** The folder of its programs and its version, or undefined. */
export function findPostgres() {
  const places = [...(process.env.PATH ?? '').split(delimiter), output('pg_config', ['--bindir']) ?? ''];
  const bin = places.find(
    (place) => place !== '' && ['postgres', 'initdb'].every((name) => existsSync(join(place, name))),
  );
  const version = bin && /([\d.]+)/.exec(output(join(bin, 'postgres'), ['--version']) ?? '')?.[1];
  return version && { bin, version };
}

export async function startPostgres({ bin }) {
  const directory = scratch('tocsin-postgres-');
  const user = unprivileged();
  if (user) chownSync(directory, user.uid, user.gid);
  const data = join(directory, 'data');
  const port = await freePort();
  const initialised = spawnSync(
    join(bin, 'initdb'),
    ['--pgdata', data, '--username', 'bench', '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C', '--no-sync'],
    { encoding: 'utf8', cwd: directory, ...user },
  );
  if (initialised.status !== 0) {
    discard(directory);
    throw new Error(`initdb failed: ${initialised.stderr}`);
  }
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    shared_buffers: '512MB',
    max_wal_size: '4GB',
    max_connections: 100,
    lc_messages: 'C',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const state = start(join(bin, 'postgres'), ['-D', data, ...flags], {}, user);
  const close = async () => {
    await stop(state);
    discard(directory);
  };
  // Before it says so it accepts connections, and refuses what they ask.
  for (let tries = 0; !state.output.includes('ready to accept connections'); tries++) {
    if (tries === 400) {
      await close();
      throw new Error(`PostgreSQL did not start:\n${state.output}`);
    }
    await delay(25);
  }
  const connectionString = `postgres://bench@127.0.0.1:${port}/postgres`;
  return { connectionString, pid: state.child.pid, directory: data, close, output: () => state.output };
}

/** PostgreSQL refuses to run as root: another user then, its own or nobody. */
function unprivileged() {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag, name) => Number(output('id', [flag, name]) ?? Number.NaN);
  const name = ['postgres', 'nobody'].find((one) => Number.isInteger(id('-u', one)));
  if (name === undefined) throw new Error('PostgreSQL does not run as root, and there is no other user to run it.');
  return { uid: id('-u', name), gid: id('-g', name) };
}
