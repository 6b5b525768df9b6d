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

/** `dead retry`, for each command but the program itself. */
const names = [...everyCommand(program)].flatMap((command) => {
  const words = [];
  for (let one = command; one.parent; one = one.parent) words.unshift(one.name());
  return words.length > 0 ? [words.join(' ')] : [];
});

/** The block below a command's heading. */
const blockOf = (name) => new RegExp(`(## tocsin ${name}\\n(?:(?!\\n## )[^])*?\`\`\`text\\n)([^\`]*)(\`\`\`)`);

describe('the page about the command line', () => {
  for (const name of names) {
    it(`shows the help of tocsin ${name}`, async () => {
      const { stdout } = await tocsin([...name.split(' '), '--help']);
      const page = readFileSync(PAGE, 'utf8');
      const found = blockOf(name).exec(page);
      assert.ok(found, `docs/reference/cli.md has no "## tocsin ${name}" with a block of its help`);
      // Writes the page anew: UPDATE=1 node --test test/docs/cli.test.mjs
      if (process.env.UPDATE)
        writeFileSync(
          PAGE,
          page.replace(blockOf(name), (_, before, __, after) => before + stdout + after),
        );
      else assert.equal(found[2], stdout);
    });
  }

  it('has no section about a command that is not there', () => {
    const sections = [...readFileSync(PAGE, 'utf8').matchAll(/^#+ tocsin (.+)$/gm)].map(([, name]) => name);
    assert.deepEqual(sections.sort(), [...names].sort());
  });
});
