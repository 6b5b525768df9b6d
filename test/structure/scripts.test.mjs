/** The scripts of package.json run in whatever shell npm uses: `sh` here, `cmd.exe` on Windows. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

test('a script is programs and their arguments joined by &&, with nothing that only one shell knows', () => {
  const portable = /^(node|npm run|npm test|vitest|biome|tsc)( [\w./:*=@-]+)*$/;
  const wrong = Object.entries(scripts).filter(([, script]) =>
    script.split(' && ').some((command) => !portable.test(command)),
  );
  assert.deepEqual(wrong, []);
});
