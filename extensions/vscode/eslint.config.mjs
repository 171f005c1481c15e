import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'dist-test/', 'e2e/', 'node_modules/', '**/*.mjs'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { project: ['./tsconfig.json', './src/webview/tsconfig.json'], tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true }],
      // Nor with void, which would lose what goes wrong. Only node:test's promises are its own affair.
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false, checkThenables: true, allowForKnownSafeCalls: [{ from: 'package', package: 'node:test', name: ['test', 'suite'] }] }],
    },
  },
);
