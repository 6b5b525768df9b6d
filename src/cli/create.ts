/** `npm create tocsin`: what `tocsin init` does, in a package of its own. */
import { version } from '../../package.json';
import { initCommand } from './commands/init';
import { run } from './program';
import { processTerminal } from './terminal';

const terminal = processTerminal();
const program = initCommand(terminal, version, undefined).name('create-tocsin').version(version, '--version');
process.exitCode = await run(program, process.argv.slice(2), terminal);
