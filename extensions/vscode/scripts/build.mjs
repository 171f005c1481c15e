// Bundles the extension and the script of the question's page into dist/.
import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const common = { absWorkingDir: root, bundle: true, minify: true, logLevel: 'warning', legalComments: 'none' };
await build({ ...common, entryPoints: { extension: 'src/extension.ts' }, outdir: 'dist', platform: 'node', format: 'cjs', target: 'node20', external: ['vscode'] });
await build({ ...common, entryPoints: { question: 'src/webview/question.ts', style: 'src/webview/question.css' }, outdir: 'dist', platform: 'browser', format: 'iife', target: 'es2022' });
