/**
 * What the routes read of a request, learned by watching them: a parsed body gets a prototype that notes every member that
 * was looked for and was not there, and the readers of the query and of headers note their names. So the fuzz run asks for
 * what the code reads today, and no list of fields goes stale.
 */
import { HonoRequest } from 'hono/request';
import { vi } from 'vitest';

/** What is known of one member: the members it has as an object, its entries as a list, the words that it takes. */
export class Shape {
  readonly members = new Map<string, Shape>();
  entry: Shape | undefined;
  readonly words = new Set<string>();

  member(name: string): Shape {
    let shape = this.members.get(name);
    if (!shape) {
      shape = new Shape();
      this.members.set(name, shape);
    }
    return shape;
  }

  /** The shape of the entries, known or not. */
  get entries(): Shape {
    this.entry ??= new Shape();
    return this.entry;
  }

  get isEmpty(): boolean {
    return this.members.size === 0 && (this.entry?.isEmpty ?? true);
  }

  /** How many members were learned, in all depths. */
  get size(): number {
    let size = this.members.size + (this.entry?.size ?? 0);
    for (const shape of this.members.values()) size += shape.size;
    return size;
  }

  /** The member that an error names, such as `jobs[0].options.queue`; undefined when that is no path. */
  at(field: string): Shape | undefined {
    if (!/^[\w[\].]{1,80}$/.test(field)) return undefined;
    let shape: Shape = this;
    for (const name of field.replace(/\[\d+\]/g, '.[]').split('.')) {
      if (name !== '') shape = name === '[]' ? shape.entries : shape.member(name);
    }
    return shape;
  }
}

/** What one route reads. */
export class RouteShape {
  readonly body = new Shape();
  readonly query = new Shape();
  readonly headers = new Set<string>();
  /** Members of the body that only errors have named: some of them are headers, or stand in the request as junk. */
  readonly named = new Set<string>();
}

/** Members that the language looks for. */
const OF_LANGUAGE = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  'toJSON',
  'then',
  'length',
  'constructor',
]);

/** Deeper members are those of nested steps, which repeat. */
const MAX_DEPTH = 6;

/** Watches the requests that go through `watching`. */
export class Watcher {
  private body: { text: string; shape: Shape } | undefined;
  private route: RouteShape | undefined;
  private watched: object[] = [];

  /** Puts the watch in place until the mocks are restored. */
  start(): void {
    const parse = JSON.parse;
    vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
      const value: unknown = parse(text, reviver);
      if (this.body && text === this.body.text) {
        watch(value, this.body.shape, this.watched);
        // Objects may parse the same text later, and have nothing to do with it.
        this.body = undefined;
      }
      return value;
    });
    const note = (where: (route: RouteShape, name: string) => void) => (name: unknown) => {
      if (this.route && typeof name === 'string') where(this.route, name);
    };
    spy(
      'query',
      note(({ query }, name) => void query.member(name)),
    );
    spy(
      'queries',
      note(({ query }, name) => void query.member(name)),
    );
    spy(
      'header',
      note(({ headers }, name) => void headers.add(name)),
    );
  }

  /** What was parsed is as it would be without a watch. */
  release(): void {
    for (const object of this.watched) Object.setPrototypeOf(object, Object.prototype);
    this.watched = [];
  }

  /** What is read while `send` runs belongs to this route. */
  async watching<T>(route: RouteShape, text: string | undefined, send: () => Promise<T>): Promise<T> {
    this.route = route;
    this.body = text === undefined ? undefined : { text, shape: route.body };
    try {
      return await send();
    } finally {
      this.route = undefined;
      this.body = undefined;
      this.release();
    }
  }
}

/** The bindings, which end the watch when an object is called: what is watched could not travel to it. */
export function watchedBindings(bindings: object, watcher: Watcher): object {
  return new Proxy(bindings, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      return isNamespace(value) ? watchedNamespace(value, watcher) : value;
    },
  });
}

/** Other bindings claim to have any member, for a call is what it would be. */
function isNamespace(value: unknown): value is DurableObjectNamespace {
  if (typeof value !== 'object' || value === null) return false;
  return Object.getPrototypeOf(value)?.constructor?.name === 'DurableObjectNamespace';
}

function watchedNamespace(namespace: DurableObjectNamespace, watcher: Watcher): object {
  return {
    getByName: (name: string) =>
      new Proxy(namespace.getByName(name), {
        get(stub, verb) {
          const verbs = stub as unknown as Record<string | symbol, (...args: unknown[]) => unknown>;
          return (...args: unknown[]) => {
            watcher.release();
            return verbs[verb]?.(...args);
          };
        },
      }),
  };
}

function spy(method: 'query' | 'queries' | 'header', note: (name: unknown) => void): void {
  const prototype = HonoRequest.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
  const original = prototype[method] as (...args: unknown[]) => unknown;
  vi.spyOn(prototype, method).mockImplementation(function (this: unknown, ...args: unknown[]) {
    note(args[0]);
    return original.apply(this, args);
  });
}

function watch(value: unknown, shape: Shape, watched: object[], depth = 0): void {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
  if (Array.isArray(value)) {
    for (const entry of value.slice(0, 5)) watch(entry, shape.entries, watched, depth + 1);
    return;
  }
  for (const [name, member] of Object.entries(value)) watch(member, shape.member(name), watched, depth + 1);
  const missing = new Proxy(Object.prototype, {
    get(target, name, receiver) {
      if (typeof name === 'string' && !OF_LANGUAGE.has(name) && !/^\d+$/.test(name)) shape.member(name);
      return Reflect.get(target, name, receiver);
    },
  });
  Object.setPrototypeOf(value, missing);
  watched.push(value);
}
