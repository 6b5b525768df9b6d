/**
 * Every object has members that nobody gave it, such as `constructor` and `__proto__`. So no member is read by a name that only the
 * program that runs knows: `own(record, name)` reads it, or `Object.hasOwn` or the record's own list of names stands before.
 */
import assert from 'node:assert/strict';
import { relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as ast from 'typescript/unstable/ast';
import { API, TypeFlags } from 'typescript/unstable/sync';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const literal = (text) => text.replace(/\W/g, '\\$&');

/** Whether something around this reading has made sure that the record itself has the member. */
function isKnown(node, source, record, name) {
  const [of, by] = [literal(record), literal(name)];
  const ways = [
    new RegExp(`^\\{ \\[${by}\\]: .*\\}\\[${by}\\]$`),
    new RegExp(`Object\\.hasOwn\\(${of}, ${by}\\)`),
    new RegExp(`const \\[?${by}\\b[^=;]*? (of Object\\.(keys|entries)\\(|in )${of}\\b`),
    new RegExp(`Object\\.(keys|entries)\\(${of}\\)[^;]{0,30}\\(+\\[?${by}\\b`),
  ];
  for (let around = node; around && around !== source; around = around.parent) {
    const text = around.getText(source);
    if (ways.some((way) => way.test(text))) return true;
  }
  return false;
}

/** Whether this writes the member or takes it away. */
function isWritten(node, source) {
  const { parent } = node;
  if (ast.isDeleteExpression(parent)) return true;
  return ast.isBinaryExpression(parent) && parent.left === node && parent.operatorToken.getText(source) === '=';
}

/** Readings of members by a `string` in a file. */
function readings(project, source) {
  const found = [];
  const visit = (node) => {
    if (ast.isElementAccessExpression(node)) {
      const type = project.checker.getTypeAtLocation(node.argumentExpression);
      const [record, name] = [node.expression.getText(source), node.argumentExpression.getText(source)];
      if (type.flags & TypeFlags.String && !isWritten(node, source) && !isKnown(node, source, record, name)) {
        found.push({ record, name, start: node.getStart(source), end: node.end });
      }
    }
    node.forEachChild(visit);
  };
  visit(source);
  return found;
}

/** Calls `each` with every file of `src`, once, in the project that compiles it. */
function eachFile(each) {
  const api = new API({ cwd: ROOT });
  const seen = new Set();
  try {
    for (const config of ['tsconfig.json', 'src/cli/tsconfig.json']) {
      const project = api.updateSnapshot({ openProject: `${ROOT}${config}` }).getProject(`${ROOT}${config}`);
      for (const path of project.program.getSourceFileNames()) {
        if (
          !path.startsWith(`${ROOT}src/`) ||
          path.startsWith(`${ROOT}src/ui/`) ||
          path.endsWith('.d.ts') ||
          seen.has(path)
        )
          continue;
        seen.add(path);
        each(project, project.program.getSourceFile(path), relative(ROOT, path));
      }
    }
  } finally {
    api.close();
  }
  return seen.size;
}

test('no member is read by a name that objects have by themselves', () => {
  const found = [];
  const files = eachFile((project, source, path) => {
    for (const { record, name, start } of readings(project, source)) {
      found.push(`${path}:${source.text.slice(0, start).split('\n').length} ${record}[${name}]`);
    }
  });
  assert.ok(files > 700, `${files} files of src`);
  assert.deepEqual(found, [], 'read with own(record, name) of src/job/own.ts');
});
