import { version } from '../../package.json';
import { createProgram, run } from './program';
import { processTerminal } from './terminal';

const terminal = processTerminal();
process.exitCode = await run(createProgram(terminal, version), process.argv.slice(2), terminal);
