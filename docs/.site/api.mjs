/** The document of the API as pages: one for each resource, one for what several resources share. */

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const SHARED = 'reference/api/shared.md';

/**
 * @param {object} document OpenAPI 3.1
 * @returns {{ path: string, text: string, about: string }[]} `about` is one line
 */
export function apiPages(document) {
  const pages = new Pages(document);
  const resources = [...pages.operations.keys()].sort();
  return [
    { path: 'reference/api/index.md', text: pages.contents(resources), about: 'every route, with its page.' },
    ...resources.map((resource) => ({
      path: fileOf(resource),
      text: pages.resource(resource),
      about: pages.about(resource),
    })),
    { path: SHARED, text: pages.shared(), about: 'shapes that several resources use.' },
  ];
}

const fileOf = (resource) => `reference/api/${resource}.md`;
const titleOf = (resource) => `API: ${resource.replaceAll('-', ' ')}`;
const nameIn = (ref) => ref.split('/').at(-1);
const addressOf = (file) => `/${file.replace(/\.md$/, '')}`;

class Pages {
  /** By resource. @type {Map<string, { method: string, path: string, operation: object }[]>} */
  operations = new Map();
  /** The page that has a schema. @type {Map<string, string>} */
  #homes = new Map();

  constructor(document) {
    this.document = document;
    const users = new Map();
    for (const [path, item] of Object.entries(document.paths)) {
      for (const method of METHODS.filter((name) => item[name])) {
        const own = item[method];
        const operation = { ...own, parameters: [...(item.parameters ?? []), ...(own.parameters ?? [])] };
        const [resource] = operation.tags;
        this.operations.set(resource, [...(this.operations.get(resource) ?? []), { method, path, operation }]);
        for (const name of this.#schemasOf(operation)) users.set(name, (users.get(name) ?? new Set()).add(resource));
      }
    }
    for (const [name, resources] of users) {
      const [only] = resources;
      this.#homes.set(name, resources.size === 1 ? fileOf(only) : SHARED);
    }
  }

  contents(resources) {
    const { info } = this.document;
    const lists = resources.map((resource) => {
      const lines = this.operations.get(resource).map(({ method, path, operation }) => {
        const anchor = slugOf(`${method} ${path}`);
        return `- [\`${method.toUpperCase()} ${path}\`](${addressOf(fileOf(resource))}#${anchor}): ${plain(operation.summary)}`;
      });
      return `## ${sentence(resource)}\n\n${lines.join('\n')}\n`;
    });
    const about = `Every route of version ${info.version}, from [its document](/reference/openapi.json).`;
    return `# The API\n\n${plain(info.description)}\n\n${about} [HTTP](/reference/http) explains them.\n\n${lists.join('\n')}`;
  }

  resource(resource) {
    const parts = this.operations.get(resource).map((entry) => this.#operation(entry));
    const schemas = this.#schemasAt(fileOf(resource));
    return `# ${titleOf(resource)}\n\n${parts.join('\n')}${schemas.length > 0 ? `\n## Shapes\n\n${schemas.join('\n')}` : ''}`;
  }

  /** The first few operations of a resource, in one line. */
  about(resource) {
    const summaries = this.operations.get(resource).map(({ operation }) => plain(operation.summary));
    const first = summaries.slice(0, 3).map((text) => text.charAt(0).toLowerCase() + text.slice(1));
    return `${first.join('; ')}${summaries.length > first.length ? '; and more' : ''}.`;
  }

  shared() {
    return `# API: what resources share\n\n${this.#schemasAt(SHARED).join('\n')}`;
  }

  #operation({ method, path, operation }) {
    const lines = [`## ${method.toUpperCase()} ${path}`, '', `${plain(operation.summary)}.`, ''];
    if (operation.description) lines.push(plain(operation.description), '');
    const scopes = (operation.security ?? this.document.security).flatMap((entry) => Object.values(entry).flat());
    lines.push(
      scopes.length > 0 ? `Scope: ${scopes.map((scope) => `\`${scope}\``).join(', ')}.` : 'No key needed.',
      '',
    );
    for (const place of ['path', 'query', 'header']) {
      const named = operation.parameters.map((one) => this.#resolve(one)).filter((one) => one.in === place);
      if (named.length === 0) continue;
      lines.push(`**${sentence(place)}**`, '');
      for (const { name, schema, required, description } of named) {
        lines.push(this.#member(name, schema, required && place !== 'path', description));
      }
      lines.push('');
    }
    if (operation.requestBody) {
      const { content, required } = operation.requestBody;
      lines.push(`**Body**${required ? '' : ', optional'}: ${this.#content(content)}`, '');
    }
    lines.push('**Answers**', '');
    for (const [status, response] of Object.entries(operation.responses)) {
      const { description, content } = this.#resolve(response);
      const name = status === 'default' ? 'Any other' : `\`${status}\``;
      const body = content ? `: ${this.#content(content)}` : '';
      lines.push(`- ${name}, ${plain(description).replace(/\.$/, '')}${body}`);
    }
    return `${lines.join('\n')}\n`;
  }

  #content(content) {
    return Object.entries(content)
      .map(([type, { schema }]) => `${schema ? this.#type(schema) : 'anything'} as \`${type}\``)
      .join(', or ');
  }

  #schemasAt(file) {
    const names = [...this.#homes].filter(([, home]) => home === file).map(([name]) => name);
    return names.sort().map((name) => {
      const schema = this.document.components.schemas[name];
      const about = schema.description ? `${plain(schema.description)}\n\n` : '';
      const members = this.#members(schema, '');
      return `### ${name}\n\n${about}${members.length > 0 ? members.join('\n') : `${sentence(this.#type(schema))}.`}\n`;
    });
  }

  /** The members of an object, each a line; those of objects in it below. */
  #members(schema, indent) {
    const required = new Set(schema.required);
    return Object.entries(schema.properties ?? {}).map(([name, member]) =>
      this.#member(name, member, required.has(name), member.description, indent),
    );
  }

  #member(name, schema, required, description, indent = '') {
    const about = description ? `: ${plain(description)}` : '';
    const line = `${indent}- \`${name}\`, ${this.#type(schema)}${required ? ', always' : ''}${about}`;
    const inner = schema.properties ? schema : schema.items?.properties && schema.items;
    return [line, ...(inner ? this.#members(inner, `${indent}  `) : [])].join('\n');
  }

  /** What a value may be, in words. */
  #type(schema) {
    if (schema.$ref) {
      const name = nameIn(schema.$ref);
      return `[${name}](${addressOf(this.#homes.get(name))}#${slugOf(name)})`;
    }
    if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
    if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
    if (schema.anyOf) return [...new Set(schema.anyOf.map((one) => this.#type(one)))].join(' or ');
    if (schema.type === 'array') return `a list of ${this.#type(schema.items ?? {})}`;
    if (schema.type === 'object') {
      const values = schema.additionalProperties;
      if (schema.properties || !values || Object.keys(values).length === 0) return 'an object';
      return `an object with values that are ${this.#type(values)}`;
    }
    const types = [schema.type ?? []].flat().map((type) => (type === 'null' ? '`null`' : type));
    return `${types.join(' or ') || 'anything'}${boundsOf(schema)}`;
  }

  #resolve(part) {
    return part.$ref
      ? part.$ref
          .slice(2)
          .split('/')
          .reduce((at, name) => at[name], this.document)
      : part;
  }

  /** The names of the schemas that a part of the document reaches. */
  #schemasOf(part, found = new Set()) {
    if (typeof part !== 'object' || part === null) return found;
    if (part.$ref) {
      const name = nameIn(part.$ref);
      const isSchema = part.$ref.startsWith('#/components/schemas/');
      if (isSchema && found.has(name)) return found;
      if (isSchema) found.add(name);
      this.#schemasOf(this.#resolve(part), found);
    }
    for (const [name, child] of Object.entries(part)) if (name !== '$ref') this.#schemasOf(child, found);
    return found;
  }
}

function boundsOf({ minimum, maximum, minLength, maxLength, format }) {
  const said = [
    minimum !== undefined && `at least ${minimum}`,
    maximum !== undefined && `at most ${maximum}`,
    minLength !== undefined && `at least ${minLength} characters`,
    maxLength !== undefined && `at most ${maxLength} characters`,
    format,
  ].filter(Boolean);
  return said.length > 0 ? ` (${said.join(', ')})` : '';
}

/** Text of one line in which nothing is a tag. */
function plain(text) {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;')))
    .join('')
    .replace(/\s*\n\s*/g, ' ');
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).replaceAll('-', ' ');

/** The anchor of a heading, as the configuration makes it. */
export function slugOf(text) {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}
