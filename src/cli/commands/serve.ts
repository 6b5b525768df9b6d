import { Command, InvalidArgumentError, Option } from 'commander';
import { durationMs } from '../../handler/duration';
import { integer, list, print } from '../command';
import type { Terminal } from '../output';
import { backUp, type Copied, restore } from '../serve/backup';
import { type ServeOptions, serve } from '../serve/serve';

const STATE = 'tocsin-state';

const folders = (folder: string, before: string[] = []): string[] => [...before, folder];

function grace(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined && ms <= 3_600_000) return ms;
  throw new InvalidArgumentError('It must be a time of at most an hour, such as 30s.');
}

export function serveCommand(terminal: Terminal): Command {
  return new Command('serve')
    .description('serve the queue on this machine, without Cloudflare: plain workerd, state in a folder')
    .option('--state <folder>', 'folder that stores the queues', STATE)
    .option('--host <address>', 'address to listen on; addresses beyond this machine require a key', '127.0.0.1')
    .option('--port <n>', 'port to listen on; 0: any free port', integer(0, 65_535), 8787)
    .option('--config <file>', 'wrangler configuration of a Worker with the queue; default: the one in this folder')
    .option('--no-config', 'ignore the configuration in this folder and serve only the queue')
    .option('--env <name>', 'environment of the configuration')
    .option('--handlers <[types=]folder>', 'also run this handler Worker, for these job types; repeatable', folders)
    .option('--env-file <file>', 'file of lines NAME=value: API_KEYS and other variables of the Workers')
    .option('--pass-env <names>', 'pass these environment variables to the Workers', list)
    .option('--allow-network <block>', 'let Workers call private, local, or a block such as 10.0.0.0/8', list)
    .option('--cluster <bucket>', 'experimental: share the queues with other processes, through s3://bucket/prefix')
    .option('--cluster-address <host:port>', 'address to listen on for the other processes; default: this machine only')
    .option('--cluster-advertise <host:port>', 'address at which other processes reach this one, if it differs')
    .option('--behind-proxy', 'trust X-Forwarded-Proto and CF-Connecting-IP from a proxy')
    .option('--tls-cert <file>', 'serve HTTPS with this certificate chain (PEM)')
    .option('--tls-key <file>', 'private key of the certificate (PEM)')
    .addOption(
      new Option('--grace <duration>', 'time for running handlers to finish at shutdown')
        .argParser(grace)
        .default(30_000, '30s'),
    )
    .option('--pretty', 'print lines for humans, not JSON')
    .option('--json', 'print JSON lines (the default)')
    .addHelpText('after', '\nSIGTERM and SIGINT let running jobs finish, then stop; a second signal stops immediately.')
    .action(async (options: Partial<ServeOptions>) => {
      const { handlers = [], passEnv = [], allowNetwork = [], ...rest } = options;
      await serve(terminal, process.cwd(), { ...rest, handlers, passEnv, allowNetwork } as ServeOptions);
    });
}

export const backupCommand = (terminal: Terminal): Command =>
  new Command('backup')
    .description('copy the state of tocsin serve consistently, even while it runs')
    .argument('<folder>', 'folder to write to; must not exist or be empty')
    .option('--state <folder>', 'state folder', STATE)
    .option('--json', 'print JSON')
    .action(async (target: string, { state, json }: { state: string; json?: boolean }) => {
      const { heldMs, ...copied } = await backUp(state, target, terminal.now);
      const held = heldMs === undefined ? 'Nothing was running.' : `Writes were blocked for ${heldMs} ms.`;
      print(terminal, json, { ...copied, heldMs: heldMs ?? null }, () => `${copiedText(copied)}\n${held}`);
    });

export const restoreCommand = (terminal: Terminal): Command =>
  new Command('restore')
    .description('make a state folder for tocsin serve from a backup')
    .argument('<backup>', 'folder that tocsin backup wrote')
    .option('--state <folder>', 'new state folder; must not exist or be empty', STATE)
    .option('--json', 'print JSON')
    .action(async (backup: string, { state, json }: { state: string; json?: boolean }) => {
      const copied = await restore(backup, state);
      print(terminal, json, copied, () => copiedText(copied));
    });

const copiedText = ({ folder, files, bytes }: Copied) => `${folder}  ${files} files, ${(bytes / 1e6).toFixed(1)} MB`;
