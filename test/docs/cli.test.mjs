// docs/reference/cli.md shows the help of every command word for word, and names no command that is not there.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { load, tocsin } from '../cli/cli.mjs';
import { root } from './dev.mjs';

const PAGE = join(root, 'docs/reference/cli.md');

const { createProgram, everyCommand } = await load('program.ts');
const program = createProgram({ env: {} }, '0.0.0');

/** The commands but the program itself, by their words: `dead retry`. */
const commands = new Map(
  [...everyCommand(program)].flatMap((command) => {
    const words = [];
    for (let one = command; one.parent; one = one.parent) words.unshift(one.name());
    return words.length > 0 ? [[words.join(' '), command]] : [];
  }),
);

/** The help as it is printed where there is no terminal. */
const helpOf = (command) => command.configureHelp({ helpWidth: 80 }).helpInformation();

/** The block below a command's heading. */
const blockOf = (name) => new RegExp(`(## tocsin ${name}\\n(?:(?!\\n## )[^])*?\`\`\`text\\n)([^\`]*)(\`\`\`)`);

describe('the page about the command line', () => {
  for (const [name, command] of commands) {
    it(`shows the help of tocsin ${name}`, () => {
      const help = helpOf(command);
      const page = readFileSync(PAGE, 'utf8');
      const found = blockOf(name).exec(page);
      assert.ok(found, `docs/reference/cli.md has no "## tocsin ${name}" with a block of its help`);
      // Writes the page anew: UPDATE=1 node --test test/docs/cli.test.mjs
      if (process.env.UPDATE)
        writeFileSync(
          PAGE,
          page.replace(blockOf(name), (_, before, __, after) => before + help + after),
        );
      else assert.equal(found[2], help);
    });
  }

  it('shows what the program prints', async () => {
    for (const name of ['enqueue', 'dead retry']) {
      const { stdout } = await tocsin([...name.split(' '), '--help']);
      assert.equal(stdout, helpOf(commands.get(name)));
    }
  });

  it('has no section about a command that is not there', () => {
    const sections = [...readFileSync(PAGE, 'utf8').matchAll(/^#+ tocsin (.+)$/gm)].map(([, name]) => name);
    assert.deepEqual(sections.sort(), [...commands.keys()].sort());
  });
});
