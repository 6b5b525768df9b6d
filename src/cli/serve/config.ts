import { basename, parse } from 'node:path';
import { type Module, SERVED } from './bundle';
import type { Cluster } from './cluster';
import type { ServedWorker } from './worker';

export interface BuiltWorker {
  worker: ServedWorker;
  modules: readonly Module[];
  /** Variables that it takes from the environment. They go before those of its configuration. */
  variables: readonly string[];
}

export interface RuntimeConfig {
  /** The first one holds the queue. */
  workers: readonly BuiltWorker[];
  objects: string;
  address: string;
  /** Requests come through a proxy, whose headers name the client and the protocol. */
  behindProxy?: boolean | undefined;
  tls?: { certificate: string; key: string } | undefined;
  /** Where the program reaches the queue's Worker: the runtime starts in the folder of this socket. */
  inner?: string | undefined;
  cluster?: Cluster | undefined;
  /** Networks that Workers may reach beside the public one. */
  networks: readonly string[];
  /** Certificates of authorities beside those of the system, PEM. */
  authorities: readonly string[];
}

/** The name of a Worker's service: no name of a Worker is one of the others. */
const serviceOf = (name: string) => `worker ${name}`;

export function quote(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to be written in another way
  return `"${text.replace(/[\\"]/g, '\\$&').replace(/[\u0000-\u001f\u007f]/g, inHex)}"`;
}

const inHex = (char: string) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`;

/** The contents of a file. */
class Embedded {
  constructor(readonly path: string) {}
}

/** A file that lies anywhere: the runtime is started with the root as a folder to import from. */
const embed = (path: string) => new Embedded(path.slice(parse(path).root.length - 1).replaceAll('\\', '/'));

/** A value as the runtime's configuration language has it. Members that are undefined are left out. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return `[${value.map(textOf).join(', ')}]`;
  if (value instanceof Embedded) return `embed ${quote(value.path)}`;
  if (typeof value !== 'object' || value === null) return String(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `(${members.map(([name, member]) => `${name} = ${textOf(member)}`).join(', ')})`;
}

export function configText(config: RuntimeConfig): string {
  const { workers, objects, networks, authorities, cluster } = config;
  const internet = {
    allow: ['public', ...networks],
    tlsOptions: { trustBrowserCas: true, trustedCertificates: authorities },
  };
  const text = textOf({
    logging: { structuredLogging: true },
    cluster,
    sockets: socketsOf(config),
    services: [
      { name: 'objects', disk: { path: objects, writable: true } },
      { name: 'internet', network: internet },
      ...workers.map((built) => ({ name: serviceOf(built.worker.name), worker: workerOf(built) })),
    ],
  });
  return `using Workerd = import "/workerd/workerd.capnp";\nconst config :Workerd.Config = ${text};\n`;
}

/** Headers with which a proxy describes a request. Any client may send them. */
const FORWARDED = [
  'CF-Connecting-IP',
  'Forwarded',
  'MF-Original-URL',
  'True-Client-IP',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Port',
  'X-Forwarded-Prefix',
  'X-Forwarded-Proto',
  'X-Real-IP',
];

function socketsOf({ workers, address, behindProxy = false, tls, inner }: RuntimeConfig): object[] {
  const service = { name: serviceOf(workers[0]?.worker.name ?? '') };
  // A header without a value is removed.
  const options = behindProxy
    ? { forwardedProtoHeader: 'X-Forwarded-Proto' }
    : { injectRequestHeaders: FORWARDED.map((name) => ({ name })) };
  const keypair = tls && { privateKey: embed(tls.key), certificateChain: embed(tls.certificate) };
  const protocol = keypair ? { https: { options, tlsOptions: { keypair } } } : { http: options };
  const outer = { name: 'http', address, ...protocol, service };
  if (inner === undefined) return [outer];
  const served = { ...service, entrypoint: SERVED };
  return [outer, { name: 'inner', address: `unix:${basename(inner)}`, http: {}, service: served }];
}

function workerOf({ worker, modules, variables }: BuiltWorker): object {
  const { date, flags, vars, services, objects, classes } = worker;
  const own = Object.entries(vars).filter(([name]) => !variables.includes(name));
  return {
    modules: modules.map(({ name, kind, file }) => ({ name, [kind]: new Embedded(file) })),
    ...{ compatibilityDate: date, compatibilityFlags: flags },
    bindings: [
      ...own.map(([name, value]) => ({
        name,
        ...(typeof value === 'string' ? { text: value } : { json: JSON.stringify(value) }),
      })),
      ...variables.map((name) => ({ name, fromEnvironment: name })),
      ...services.map(({ binding, service, entrypoint }) => {
        return { name: binding, service: { name: serviceOf(service), entrypoint } };
      }),
      ...objects.map(({ binding, className, service }) => {
        const serviceName = service && serviceOf(service);
        return { name: binding, durableObjectNamespace: { className, serviceName } };
      }),
    ],
    durableObjectNamespaces: classes.map(({ className, key, sql }) => ({ className, uniqueKey: key, enableSql: sql })),
    ...(classes.length > 0 && { durableObjectStorage: { localDisk: 'objects' } }),
  };
}
