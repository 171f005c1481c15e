// Package hide knows where credentials are usually kept, and finds those that
// are there: what confined commands cannot read unless a person says otherwise.
//
// Configuration is readable, credentials are not. Where both stand in one file,
// it is hidden if it has something that looks like a credential.
package hide
