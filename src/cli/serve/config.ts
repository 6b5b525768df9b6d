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
  behindProxy?: boolean;
  tls?: { certificate: string; key: string };
  /** Where the program reaches the queue's Worker: the runtime starts in the folder of this socket. */
  inner?: string;
  cluster?: Cluster;
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

/** Embeds a file that lies anywhere: the runtime is started with the root as a folder to import from. */
const embed = (path: string) => `embed ${quote(path.slice(parse(path).root.length - 1).replaceAll('\\', '/'))}`;

const pair = ({ key, certificate }: { key: string; certificate: string }) =>
  `privateKey = ${embed(key)}, certificateChain = ${embed(certificate)}`;

export function configText(config: RuntimeConfig): string {
  const { workers, objects, networks, authorities } = config;
  const services = workers.map((built) => workerText(built));
  const trusted = authorities.map(quote).join(', ');
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  logging = (structuredLogging = true),${clusterText(config)}
  sockets = [
    ${sockets(config).join(',\n    ')},
  ],
  services = [
    (name = "objects", disk = (path = ${quote(objects)}, writable = true)),
    (name = "internet", network = (
      allow = [${['public', ...networks].map(quote).join(', ')}],
      tlsOptions = (trustBrowserCas = true, trustedCertificates = [${trusted}]),
    )),
${services.join('\n')}
  ],
);
`;
}

function clusterText({ cluster }: RuntimeConfig): string {
  if (!cluster) return '';
  return `
  cluster = (${Object.entries(cluster)
    .map(([name, value]) => `${name} = ${quote(value)}`)
    .join(', ')}),`;
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

function sockets({ workers, address, behindProxy = false, tls, inner }: RuntimeConfig): string[] {
  const name = quote(serviceOf(workers[0]?.worker.name ?? ''));
  // A header without a value is removed.
  const options = behindProxy
    ? 'forwardedProtoHeader = "X-Forwarded-Proto"'
    : `injectRequestHeaders = [${FORWARDED.map((header) => `(name = ${quote(header)})`).join(', ')}]`;
  const protocol = tls
    ? `https = (options = (${options}), tlsOptions = (keypair = (${pair(tls)})))`
    : `http = (${options})`;
  const outer = `(name = "http", address = ${quote(address)}, ${protocol}, service = ${name})`;
  if (inner === undefined) return [outer];
  const served = `(name = ${name}, entrypoint = "${SERVED}")`;
  return [outer, `(name = "inner", address = ${quote(`unix:${basename(inner)}`)}, http = (), service = ${served})`];
}

function workerText({ worker, modules, variables }: BuiltWorker): string {
  const { name, date, flags, vars, services, objects, classes } = worker;
  const bindings = [
    ...Object.entries(vars)
      .filter(([key]) => !variables.includes(key))
      .map(([key, value]) =>
        typeof value === 'string'
          ? `(name = ${quote(key)}, text = ${quote(value)})`
          : `(name = ${quote(key)}, json = ${quote(JSON.stringify(value))})`,
      ),
    ...variables.map((key) => `(name = ${quote(key)}, fromEnvironment = ${quote(key)})`),
    ...services.map(({ binding, service, entrypoint }) => {
      const target = quote(serviceOf(service));
      const designator = entrypoint === undefined ? target : `(name = ${target}, entrypoint = ${quote(entrypoint)})`;
      return `(name = ${quote(binding)}, service = ${designator})`;
    }),
    ...objects.map(({ binding, className, service }) => {
      const elsewhere = service === undefined ? '' : `, serviceName = ${quote(serviceOf(service))}`;
      return `(name = ${quote(binding)}, durableObjectNamespace = (className = ${quote(className)}${elsewhere}))`;
    }),
  ];
  const namespaces = classes.map(
    ({ className, key, sql }) => `(className = ${quote(className)}, uniqueKey = ${quote(key)}, enableSql = ${sql})`,
  );
  const embedded = modules.map(
    ({ name: module, kind, file }) => `(name = ${quote(module)}, ${kind} = embed ${quote(file)})`,
  );
  const lines = (list: readonly string[]) => list.map((item) => `\n        ${item},`).join('');
  const stored = namespaces.length > 0 ? '\n      durableObjectStorage = (localDisk = "objects"),' : '';
  return `    (name = ${quote(serviceOf(name))}, worker = (
      modules = [${lines(embedded)}
      ],
      compatibilityDate = ${quote(date)},
      compatibilityFlags = [${flags.map(quote).join(', ')}],
      bindings = [${lines(bindings)}
      ],
      durableObjectNamespaces = [${lines(namespaces)}
      ],${stored}
    )),`;
}
